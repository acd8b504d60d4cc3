"""Files of a model's outputs, read a row at a time on all cores: each row gets columns with what was read."""
