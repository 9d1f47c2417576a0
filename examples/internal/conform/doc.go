// Package conform tests what the SDK relies on, on any implementation of Bigtable.
package conform
