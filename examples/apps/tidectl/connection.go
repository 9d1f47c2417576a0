package main

import (
	"fmt"
	"os"
	"regexp"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// emulatorScheme is what a client may have before an emulator's address.
var emulatorScheme = regexp.MustCompile(`^(http://|https://|passthrough:///)`)

// connection returns the options of a client of Cloud Bigtable, or of an emulator. Closing the client closes the
// connection.
func connection(dial ...grpc.DialOption) (opts []option.ClientOption, err error) {
	host := os.Getenv("BIGTABLE_EMULATOR_HOST")
	if host == "" {
		for _, d := range dial {
			opts = append(opts, option.WithGRPCDialOption(d))
		}
		return opts, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+emulatorScheme.ReplaceAllString(host, ""), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, fmt.Errorf("BIGTABLE_EMULATOR_HOST=%q: %w", host, err)
	}
	return []option.ClientOption{option.WithGRPCConn(conn)}, nil
}
