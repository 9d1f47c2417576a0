package engine

// OpenReaders counts the reads in progress.
func (e *Engine) OpenReaders() int { return e.readers.open() }
