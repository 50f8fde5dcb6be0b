"""The paper's baselines, a looped transformer and CRvNN, trained under its protocol."""
