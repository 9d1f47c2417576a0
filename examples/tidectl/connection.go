package main

import (
	"fmt"
	"os"
	"strings"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/tsdb"
)

// foreignOptions returns the options of a client with the store's interceptors, on Cloud Bigtable or on an emulator.
func foreignOptions() (opts []option.ClientOption, err error) {
	host := os.Getenv("BIGTABLE_EMULATOR_HOST")
	if host == "" {
		for _, d := range tsdb.DialOptions() {
			opts = append(opts, option.WithGRPCDialOption(d))
		}
		return opts, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(strings.TrimPrefix(host, "http://"), "https://"), append(tsdb.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, fmt.Errorf("BIGTABLE_EMULATOR_HOST=%q: %w", host, err)
	}
	return []option.ClientOption{option.WithGRPCConn(conn)}, nil // the client closes it
}
