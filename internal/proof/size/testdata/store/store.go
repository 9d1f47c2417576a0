// Package store uses a store and no payloads.
package store

import "github.com/tidemark-go/tidemark/tsdb"

// Close closes a store.
func Close(s *tsdb.Store) error { return s.Close() }
