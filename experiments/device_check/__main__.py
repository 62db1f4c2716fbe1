"""Run the device check."""

import sys

from experiments.device_check.run import main

sys.exit(main())
