module winready.invalid/standin

go 1.23
