"""The verbs, one file each; ``quire.cli.verb_group`` imports the one that is used."""
