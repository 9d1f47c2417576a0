package main

import "github.com/urfave/cli/v3"

// tenants is the group of commands on tenants.
func (a *app) tenants() *cli.Command {
	return &cli.Command{
		Name:  "tenants",
		Usage: "their way in, what they have stored, and their way out",
		Commands: []*cli.Command{
			a.tenantsList(), a.tenantsShow(), a.tenantsUsage(), a.tenantsOnboard(),
			a.tenantsExport(), a.tenantsImport(), a.tenantsErase(), a.tenantsReadmit(),
		},
	}
}
