"""Problems for language models: rows, prompts, data sets, and the score of predictions."""
