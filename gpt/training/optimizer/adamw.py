"""AdamW (Loshchilov & Hutter 2019), PyTorch's, fused where the device has a fused kernel."""

from typing import Literal

from pydantic import Field
from torch import optim

from gpt.model.gpt import GPT
from gpt.training.optimizer import OptimizerConfig, parameter_groups

FUSED = ("cuda", "cpu", "mps")


class AdamwConfig(OptimizerConfig):
    """Adam with decoupled weight decay; gains and biases do not decay."""

    name: Literal["adamw"] = "adamw"
    lr: float = Field(default=2e-3, gt=0, le=1000)
    """Peak learning rate."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the gradient's running mean."""
    beta2: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the squared gradient's running mean."""
    eps: float = Field(default=1e-8, gt=0)
    """Added to the root of the squared gradient's mean."""
    weight_decay: float = Field(default=0.1, ge=0, le=1000)
    """Each update shrinks matrices and embeddings by this times the learning rate."""

    def build(self, model: GPT) -> optim.Optimizer:
        """One AdamW over the three groups."""
        groups = [
            {
                "name": group,
                "params": list(parameters.items()),
                "weight_decay": 0.0 if group == "vectors" else self.weight_decay,
                "initial_lr": self.lr,
            }
            for group, parameters in parameter_groups(model).items()
            if parameters
        ]
        fused = next(model.parameters()).device.type in FUSED
        return optim.AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=fused)
