//go:build !race

package tsdb_test

const raced = false
