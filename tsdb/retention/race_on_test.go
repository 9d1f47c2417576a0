//go:build race

package retention_test

const raced = true
