"""The designer: fills every part of an action plan by stated rules, without a language model."""
