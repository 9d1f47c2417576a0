package rollup

import "github.com/tidemark-go/tidemark/tsdb"

// ErrInvalid is tsdb.ErrInvalid: an argument that nothing can be made of. An InvalidError says which, and the limit.
var ErrInvalid = tsdb.ErrInvalid
