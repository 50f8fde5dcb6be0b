"""The same problems for language models: rows, prompts, data sets, and the score of predictions."""
