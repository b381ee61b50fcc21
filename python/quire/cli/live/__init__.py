"""What ``quire top`` shows: samples of queues, which need no terminal, and screens of them."""
