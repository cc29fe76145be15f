"""Plan, per-phone session, campaign."""
