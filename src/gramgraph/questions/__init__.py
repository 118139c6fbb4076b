"""Questions: what is asked in numbers (`question`), how it is read (`reading`), and who answers it (`ask`)."""
