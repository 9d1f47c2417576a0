package engine

import (
	"context"
	"time"
)

// OpenReaders counts the reads in progress.
func (e *Engine) OpenReaders() int { return e.readers.open() }

// BeginClose does what Close does before it waits.
func (e *Engine) BeginClose() { e.closing.Store(true) }

// Uncompacted returns how many bytes were deleted from a table that may still be on disk.
func (e *Engine) Uncompacted(table string) int64 { return (*e.tables.Load())[table].garbage.bytes }

// CollectWithRests is RunGC with rests.
func (e *Engine) CollectWithRests(ctx context.Context, rest func(ctx context.Context, worked time.Duration) error) error {
	return e.runGC(ctx, rest)
}
