# Everything that the project needs, it installs into .venv by itself: python3 (3.11 or newer) with venv is enough.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: venv demo test test-systemd check style types layers coverage fuzz soak chaos clean install install-program install-units uninstall

venv: $(VENV)/installed
demo: $(VENV)/installed
	$(BIN)/fkctl demo

test: $(VENV)/tests-installed
	$(BIN)/python -m pytest

# A real systemd, booted in a container: activation, watchdog, kills, reloads, permissions. Needs root and systemd-nspawn.
test-systemd:
	tests/systemd/run

check: style types layers test

style: $(VENV)/tests-installed
	$(BIN)/ruff check .
types: $(VENV)/tests-installed
	$(BIN)/mypy
layers: $(VENV)/tests-installed
	$(BIN)/lint-imports

# Ten minutes by default: make fuzz SECONDS=3600 SEED=7
SEED ?= 0
fuzz: SECONDS ?= 600
fuzz: $(VENV)/tests-installed
	$(BIN)/python tests/fuzz/fuzz.py --seconds $(SECONDS) --seed $(SEED)

# A steady load, every answer checked: make soak HOURS=8
MINUTES ?= 2
soak: $(VENV)/tests-installed
	$(BIN)/python tests/soak/soak.py --minutes $(MINUTES) $(if $(HOURS),--hours $(HOURS)) --seed $(SEED)

# Kills, reloads, bad bundles, floods and bad clients at random, every answer checked: make chaos SECONDS=600 SEED=7
chaos: SECONDS ?= 60
chaos: $(VENV)/tests-installed
	$(BIN)/python tests/soak/chaos.py --seconds $(SECONDS) --seed $(SEED)

coverage: $(VENV)/tests-installed
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage report

clean:
	rm -rf $(VENV) build dist *.egg-info client/*.egg-info client/build .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Editable, so that what is tested is what stands here.
$(VENV)/installed: $(VENV)/bin/python pyproject.toml client/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --editable ./client
	touch $@

$(VENV)/tests-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group test --group style
	if command -v npm; then $(NPM_INSTALL) $(PEERS) || echo 'npm failed: the tests that need what it installs are skipped'; fi
	touch $@

# Other people's JSON-RPC on Node, and OpenRPC's meta-schema. Without npm, the tests that need them are skipped.
PEERS = vscode-jsonrpc@8 jayson@4 @open-rpc/meta-schema@1 @json-schema-tools/meta-schema@1
NPM_INSTALL = npm install --prefix $(VENV)/node --no-save --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error

# As a service: make install, or to pack it: make install DESTDIR=stage PREFIX=/usr
PREFIX ?= /usr/local
override DESTDIR := $(abspath $(DESTDIR))
LIB = $(DESTDIR)$(PREFIX)/lib
ETC = $(DESTDIR)/etc
NEW = $(LIB)/fkd.new
UNITS = fkd.service fkd.socket fkd@.service fkd@.socket
BOOTED = [ -z '$(DESTDIR)' ] && [ -d /run/systemd/system ]

install: install-program install-units
	@if $(BOOTED); then systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload; fi
	@printf '%s\n' 'fkd is installed. Next:' \
	    '    fkctl pack ROBOT.urdf -o /etc/fkd/robot.zip    # or copy a bundle there' \
	    '    usermod -aG fkd-clients USER                   # who may ask, from the next login on' \
	    '    systemctl enable --now fkd                     # and its socket, /run/fkd/fkd.sock'

# A virtual environment is made beside the old one and takes its place once it is whole. Its scripts name the folder
# that they are in, and so have to be told where it will be. The tree here stays as it is: its copy is built.
install-program:
	@for path in $(PREFIX) $$($(PYTHON) -c 'import sys; print(sys.base_prefix)'); do case $$path/ in /home/*|/roo?/*|/tmp/*) \
	    echo "install: the service sees nothing in /home, /root or /tmp, so not $$path; choose another PREFIX= or PYTHON=" >&2; exit 1;; esac; done
	rm -rf $(NEW)
	umask 022 && $(PYTHON) -m venv $(NEW) && mkdir $(NEW)/source && cp -R pyproject.toml README.md LICENSE fkd client $(NEW)/source
	umask 022 && $(NEW)/bin/python -m pip install --quiet --disable-pip-version-check $(NEW)/source $(NEW)/source/client
	$(NEW)/bin/python -I -c 'import fkd.daemon, fkclient'
	rm -rf $(NEW)/source $(NEW)/lib/python*/site-packages/fkd*/direct_url.json
	grep -lIr $(NEW) $(NEW)/bin $(NEW)/pyvenv.cfg | xargs sed -i 's|$(NEW)|$(PREFIX)/lib/fkd|g'
	rm -rf $(LIB)/fkd && mv $(NEW) $(LIB)/fkd
	install -d $(DESTDIR)$(PREFIX)/bin && ln -sfn ../lib/fkd/bin/fkd ../lib/fkd/bin/fkctl $(DESTDIR)$(PREFIX)/bin

install-units:
	install -d $(LIB)/systemd/system $(LIB)/sysusers.d $(LIB)/tmpfiles.d $(ETC)/fkd
	install -m 644 $(UNITS:%=systemd/%) $(LIB)/systemd/system
	sed -i 's|/usr/local/bin/|$(PREFIX)/bin/|' $(UNITS:%=$(LIB)/systemd/system/%)
	install -m 644 systemd/fkd.sysusers $(LIB)/sysusers.d/fkd.conf
	install -m 644 systemd/fkd.tmpfiles $(LIB)/tmpfiles.d/fkd.conf

# What the operator made stays: /etc/fkd, drop-ins, the group.
uninstall:
	if $(BOOTED); then systemctl disable --now fkd.service fkd.socket; systemctl disable fkd@.service fkd@.socket; systemctl stop 'fkd@*'; fi
	rm -rf $(LIB)/fkd $(NEW) $(DESTDIR)$(PREFIX)/bin/fkd $(DESTDIR)$(PREFIX)/bin/fkctl $(UNITS:%=$(LIB)/systemd/system/%)
	rm -f $(LIB)/sysusers.d/fkd.conf $(LIB)/tmpfiles.d/fkd.conf
	if $(BOOTED); then systemctl daemon-reload; fi
