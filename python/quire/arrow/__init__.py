"""Arrow: schemas, and messages as columns both ways. Needs ``quire[arrow]``."""
