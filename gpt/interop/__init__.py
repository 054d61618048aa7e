"""Models in the files of other programs: theirs read as ours, ours written as theirs.

Nothing that is read is executed, and no pickle but by PyTorch's reader of bare tensors.
"""
