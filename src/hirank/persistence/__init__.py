"""Fitted models as files: arrays, numbers and words; no pickle, no code."""
