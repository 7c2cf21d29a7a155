"""Statistics of a fitted network: degrees of freedom, risk and criteria of model choice."""
