package embedded_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func ExampleServer() {
	server, err := embedded.NewServer(embedded.Options{}) // Set Dir to "./data" for a folder.
	if err != nil {
		log.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, lis) }()

	// Any Bigtable client works with BIGTABLE_EMULATOR_HOST set to lis.Addr().

	stop()
	fmt.Println(<-served)
	// Output: <nil>
}
