// Package sum is code that the patches of package broken's own test break.
package sum

// Of returns a sum.
func Of(a, b int) int {
	return a + b
}
