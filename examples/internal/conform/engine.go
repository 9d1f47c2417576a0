package conform

import (
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
)

// Engine opens an embedded engine in memory. It returns how to dial it, for Options.Dial, and how to close it.
func Engine() (dial func(...grpc.DialOption) (*grpc.ClientConn, error), closeEngine func() error, err error) {
	s, err := local.Open(engine.Options{GCInterval: -1})
	if err != nil {
		return nil, nil, err
	}
	return s.Dial, s.Close, nil
}
