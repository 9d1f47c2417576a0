//go:build race

package cost

const raced = true
