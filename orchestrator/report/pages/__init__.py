"""What `fleet explain` says of each word, and the reference pages made of the same values."""
