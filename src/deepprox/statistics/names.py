"""The criteria by name, and how each is written. Nothing is imported: the command line needs them early."""

CRITERIA = {"aic": "AIC", "aicc": "AICc", "bic": "BIC", "ebic": "EBIC", "gcv": "GCV"}
