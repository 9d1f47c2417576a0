package main

import "github.com/urfave/cli/v3"

// tenants is the group of commands on tenants.
func (a *app) tenants() *cli.Command {
	return &cli.Command{
		Name:  "tenants",
		Usage: "list, onboard, measure, export, import and erase tenants",
		Commands: []*cli.Command{
			a.tenantsList(), a.tenantsShow(), a.tenantsUsage(), a.tenantsOnboard(),
			a.tenantsExport(), a.tenantsImport(), a.tenantsErase(), a.tenantsReadmit(),
		},
	}
}
