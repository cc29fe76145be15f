"""Compresses packages after their making: a user's own, or one of `fleet model build` in fp16."""
