"""The verbs, one file each; ``quire.cli.group`` imports the one that is used."""
