//go:build race

package rollup_test

const raced = true
