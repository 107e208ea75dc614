"""Settings of ReFrame for this host alone. A site has its own; rdmascope.py runs with any."""

site_configuration = {
    "systems": [
        {
            "name": "here",
            "descr": "This host",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "local",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["builtin"],
                }
            ],
        }
    ],
    "environments": [{"name": "builtin", "cc": "", "cxx": "", "ftn": ""}],
}
