//! The variables that select a transport of MPI, for each library that has such variables. The
//! variables of all libraries are set, because each library reads only its own.

use super::choices::MpiTransport;

/// Returns the variables of a transport, with their values.
pub(crate) fn variables(transport: MpiTransport) -> &'static [(&'static str, &'static str)] {
    match transport {
        MpiTransport::Default => &[],
        MpiTransport::Shm => &[
            ("OMPI_MCA_pml", "ob1"),
            // Release 5 accepts this name for its `sm`.
            ("OMPI_MCA_btl", "self,vader"),
            ("UCX_TLS", "sm,self"),
            ("FI_PROVIDER", "shm"),
            ("I_MPI_FABRICS", "shm"),
        ],
        MpiTransport::Tcp => &[
            ("OMPI_MCA_pml", "ob1"),
            ("OMPI_MCA_btl", "self,tcp"),
            ("UCX_TLS", "tcp,self"),
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("FI_PROVIDER", "tcp"),
            ("I_MPI_FABRICS", "ofi"),
        ],
        MpiTransport::Verbs => &[
            ("OMPI_MCA_pml", "ucx"),
            ("OMPI_MCA_pml_ucx_tls", "any"),
            ("OMPI_MCA_pml_ucx_devices", "any"),
            // RC needs UD for its set-up, which `rc` includes.
            ("UCX_TLS", "rc,self"),
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("FI_PROVIDER", "verbs"),
            ("I_MPI_FABRICS", "ofi"),
        ],
    }
}

/// The variable with the devices that UCX may use, each with its port.
pub(crate) const NET_DEVICES: &str = "UCX_NET_DEVICES";
