"""`python -m fkd.ctl` is fkctl."""

import sys

from fkd.ctl.main import main

sys.exit(main())
