package dataset

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// The errors of checks. Package tsdb exports them under the same names and documents them.
var (
	ErrInvalid     = rowkey.ErrInvalid
	ErrExpired     = errors.New("tsdb: point is past its retention")
	ErrLate        = errors.New("tsdb: point is too late")
	ErrExists      = errors.New("tsdb: another point is stored at that time")
	ErrTooFarAhead = errors.New("tsdb: point is too far in the future")
)
