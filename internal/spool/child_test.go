package spool_test
const childDir = "TIDEMARK_SPOOL_DIR"
func child(string) error { return nil }
