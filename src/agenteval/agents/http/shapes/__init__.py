"""Published forms of requests and replies that need no mapping."""
