"""What datasets are made of: files found, fetched and read as documents, and the documents shared out."""
