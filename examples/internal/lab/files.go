package lab

import (
	"bytes"
	"embed"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

//go:embed template.yaml
var templateText []byte

//go:embed workloads/*.yaml
var workloads embed.FS

// Template returns a file with comments to begin with. It is a complete example.
func Template() []byte { return bytes.Clone(templateText) }

// Workloads returns the names of the workloads that ship with the lab, in alphabetical order.
func Workloads() []string {
	list, _ := workloads.ReadDir("workloads") // which is embedded
	var names []string
	for _, f := range list {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// Workload returns the file of a workload that ships with the lab: "meters", "fleet", "factory", "pages" or "events".
// The error matches ErrInvalid and lists the names.
func Workload(name string) ([]byte, error) {
	if !slices.Contains(Workloads(), name) {
		return nil, invalid.New(ErrInvalid, "workload", invalid.Quote(name), strings.Join(Workloads(), ", "))
	}
	return workloads.ReadFile("workloads/" + name + ".yaml")
}
