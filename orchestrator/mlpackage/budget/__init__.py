"""The KV-cache ceiling: which iPhone holds which context of which model."""
