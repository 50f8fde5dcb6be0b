"""What the paper compares with: a looped transformer and CRvNN, trained under its protocol."""
