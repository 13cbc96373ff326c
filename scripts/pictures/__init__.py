"""The pictures of the documentation: what the product itself computes, writes and prints, without a browser."""
