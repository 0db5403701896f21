"""What slots were used for, and quotas: what everybody may use."""
