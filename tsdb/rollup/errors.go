package rollup

import "github.com/tidemark-go/tidemark/tsdb"

// ErrInvalid is tsdb.ErrInvalid: invalid argument. A tsdb.InvalidError names the field, the value and what is allowed.
var ErrInvalid = tsdb.ErrInvalid
