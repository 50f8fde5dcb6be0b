"""Models for other people's tools: ONNX, torch.export, Hugging Face folders."""
