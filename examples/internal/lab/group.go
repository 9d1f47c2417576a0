package lab

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// group runs functions on goroutines. If one panics, the others' context ends, and wait panics, so that the functions
// that its caller deferred still remove the scratch folder or table.
type group struct {
	ctx      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
	mu       sync.Mutex
	panicked string // the first panic with its stack; empty if there was none
}

func newGroup(ctx context.Context) *group {
	g := new(group)
	g.ctx, g.stop = context.WithCancel(ctx)
	return g
}

func (g *group) start(f func(ctx context.Context)) {
	g.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				g.fail(p)
			}
		}()
		f(g.ctx)
	})
}

func (g *group) fail(p any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.panicked == "" {
		g.panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
	}
	g.stop()
}

// wait waits for all functions, and panics if one did.
func (g *group) wait() {
	g.running.Wait()
	g.stop()
	if g.panicked != "" {
		panic(g.panicked)
	}
}

// end ends the functions and waits for them. It is deferred, for the case that the caller of wait panics itself.
func (g *group) end() {
	g.stop()
	g.running.Wait()
}
