package engine

// OpenReaders counts the reads in progress.
func (e *Engine) OpenReaders() int { return e.readers.open() }

// BeginClose does what Close does before it waits.
func (e *Engine) BeginClose() { e.closing.Store(true) }
