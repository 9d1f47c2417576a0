// Package valid uses the public API only. It compiles.
package valid

import "github.com/tidemark-go/tidemark/tsdb"

func use() error {
	var s tsdb.Store
	return s.Close()
}
